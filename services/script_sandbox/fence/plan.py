"""What the service tells the launcher of a worker: words before the interpreter's own arguments.

Plain words and a plain class: what reads them is started anew for every script, and a JSON reader or
a dataclass would double the time that takes.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from services.script_sandbox.fence.forms import Form

_END = "--"


class FencePlan:
    """How one worker is shut in.

    Attributes:
        form: Own namespaces, or Landlock alone; both beside the system-call filter.
        program: The interpreter, by absolute path.
        files: All that may be read and run: the interpreter and the libraries it is loaded with.
        cpu_seconds: Of processor time, after which the kernel ends it (SCR-238).
        memory_bytes: Of address space: the values a script may hold, and the interpreter.
        open_files: Descriptors at once.
    """

    __slots__ = ("cpu_seconds", "files", "form", "memory_bytes", "open_files", "program")

    def __init__(
        self,
        form: Form,
        program: str,
        files: tuple[str, ...],
        cpu_seconds: int,
        memory_bytes: int,
        open_files: int,
    ) -> None:
        self.form = form
        self.program = program
        self.files = files
        self.cpu_seconds = cpu_seconds
        self.memory_bytes = memory_bytes
        self.open_files = open_files

    def words(self) -> list[str]:
        """The plan as the launcher reads it."""
        numbers = (self.cpu_seconds, self.memory_bytes, self.open_files)
        return [self.form, self.program, *map(str, numbers), *self.files, _END]

    @classmethod
    def read(cls, words: list[str]) -> tuple[FencePlan, list[str]]:
        """The plan at the beginning of `words`, and the words after it.

        Raises:
            ValueError: It was not written by `words`.
        """
        form, program, cpu_seconds, memory_bytes, open_files, *rest = words
        end = rest.index(_END)
        if form not in ("namespaces", "landlock"):
            raise ValueError(form)
        known: Form = "namespaces" if form == "namespaces" else "landlock"
        plan = cls(known, program, tuple(rest[:end]), int(cpu_seconds), int(memory_bytes), int(open_files))
        return plan, rest[end + 1 :]
