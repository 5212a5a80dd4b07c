"""Channel options that both ends of every connection use."""

from __future__ import annotations

# The default of 4 MiB fails for a command's output of 5 MB.
MAX_MESSAGE_BYTES = 16 * 1024 * 1024

Options = tuple[tuple[str, int | str], ...]

_SIZES: Options = (
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
    # Error details with a sentence, an object and a trace stay below this.
    ("grpc.max_metadata_size", 32 * 1024),
)
_KEEPALIVE: Options = (
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
)

SERVER_OPTIONS: Options = (
    *_SIZES,
    *_KEEPALIVE,
    # A caller may ping every 10 s (GTW-274).
    ("grpc.http2.min_ping_interval_without_data_ms", 9_000),
    # Two servers on one port would take turns instead of the second one failing.
    ("grpc.so_reuseport", 0),
)
CLIENT_OPTIONS: Options = (
    *_SIZES,
    *_KEEPALIVE,
    # A service that was restarted is found again within a second.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1_000),
    ("grpc.enable_http_proxy", 0),
    ("grpc.default_authority", "localhost"),
)
