"""JSON over HTTP for the methods of the contracts: routes, bodies, answers, errors, all read from descriptors."""
