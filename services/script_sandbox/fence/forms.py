"""The forms of the fence, best first."""

from __future__ import annotations

from typing import Literal, get_args

Form = Literal["namespaces", "landlock"]
FORMS: tuple[Form, ...] = get_args(Form)
