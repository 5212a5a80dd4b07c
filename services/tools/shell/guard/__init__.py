"""The process that stands between the tools service and one command.

It is started as a fresh interpreter (`python -I -S`), so this package and what it imports of
`sandbox` use the standard library alone: every import is paid once per command.
"""
