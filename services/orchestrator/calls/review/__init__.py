"""A second model that looks at calls which would otherwise run unattended (PIP-100 to 103).

`contract` holds the values, `answer` reads what the model said, `prompt` is what it is asked, and
`Reviewer` asks it. Whatever goes wrong counts as a reason to ask a person.
"""

from services.orchestrator.calls.review.contract import (
    Judgement,
    ReviewRequest,
    Reviews,
    rule_for,
)
from services.orchestrator.calls.review.reviewer import Reviewer

__all__ = ["Judgement", "ReviewRequest", "Reviewer", "Reviews", "rule_for"]
