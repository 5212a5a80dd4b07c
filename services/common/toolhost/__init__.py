"""What a tool is, for the services that offer tools and the one that calls them."""
