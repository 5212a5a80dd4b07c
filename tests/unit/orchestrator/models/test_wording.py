import re
import string
from pathlib import Path

from services.common.wording import load

WORDS = load("orchestrator")
SOURCES = Path(__file__).parents[4] / "services" / "orchestrator" / "models"


def placeholders(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


def test_both_languages_have_the_same_texts_and_placeholders() -> None:
    english, vietnamese = WORDS.keys("en", "models."), WORDS.keys("vi", "models.")
    assert english == vietnamese
    for key in english:
        assert placeholders(WORDS.text("en", key)) == placeholders(WORDS.text("vi", key)), key


def test_every_key_named_in_the_code_has_a_text() -> None:
    named = {
        key
        for path in SOURCES.rglob("*.py")
        for key in re.findall(r'"(models\.(?:error|fault|broken)\.[a-z_]+)"', path.read_text("utf-8"))
    }
    assert len(named) > 15
    assert [key for key in named if not WORDS.has(key)] == []
