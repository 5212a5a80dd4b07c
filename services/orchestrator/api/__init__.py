"""The gRPC servicers, one file a resource: they translate and delegate, and hold no rules."""
