"""What the kernel offers to shut a process in: Landlock, system-call filters, privileges given up.

Standard library alone: launchers import this in a fresh interpreter (`python -I -S`) for every
process they confine, and every import is paid each time. What is shut in, and how tightly, is
decided by the service whose process it is.
"""
