"""Files of a workspace: listing, reading, writing, editing and searching them."""
