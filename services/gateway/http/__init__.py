"""JSON over HTTP: routes, bodies, answers and errors, all read from the contracts' descriptors."""
