"""Which label an answer means (SCR-144 to 149)."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.orchestrator.scripts.labels import chosen

BILLS = ["việc cần làm", "hoá đơn"]


@pytest.mark.spec("SCR-145", "SCR-146", "SCR-144")
@pytest.mark.parametrize(
    ("answer", "labels", "meant"),
    [
        ("hoá đơn", BILLS, "hoá đơn"),
        ("  HOÁ   ĐƠN \n", BILLS, "hoá đơn"),
        (unicodedata.normalize("NFD", "hoá đơn"), BILLS, "hoá đơn"),
        ("**Hoá đơn**.", BILLS, "hoá đơn"),
        ("`hoá đơn`", BILLS, "hoá đơn"),
        ("It is “hoá đơn”, I think", BILLS, "hoá đơn"),
        ("STRASSE", ["straße", "weg"], "straße"),
        ("I know it", ["no", "yes"], None),
        ("no, it is not", ["no", "yes"], "no"),
        ("yes or no", ["no", "yes"], None),
        ("", ["no", "yes"], None),
        ("neither", ["no", "yes"], None),
        ("A B", ["a b", "c"], "a b"),
        ("Label", ["label ", "x"], "label "),
    ],
)
def test_an_answer_means_a_label_or_nothing(answer, labels, meant):
    assert chosen(answer, labels) == meant


@pytest.mark.spec("SCR-147")
@pytest.mark.parametrize("answer", ["**C++**", "C++", "C++."])
def test_marks_of_a_label_are_not_lost(answer):
    assert chosen(answer, ["C", "C++"]) == "C++"
    assert chosen(answer, ["C++", "C"]) == "C++"


@pytest.mark.spec("SCR-147")
def test_labels_that_differ_by_marks_alone_do_not_decide():
    assert chosen("**really**", ["really!", "really?"]) is None
    assert chosen("really?", ["really!", "really?"]) == "really?"


@pytest.mark.spec("SCR-149")
def test_nested_labels_work_alone_and_are_unclear_in_a_sentence():
    assert chosen("Not spam.", ["spam", "not spam"]) == "not spam"
    assert chosen("spam", ["spam", "not spam"]) == "spam"
    assert chosen("I would say this is not spam at all", ["spam", "not spam"]) is None


@pytest.mark.spec("SCR-148")
@given(st.text(max_size=60), st.lists(st.text(min_size=1, max_size=8), min_size=2, max_size=6))
def test_whatever_comes_back_is_a_label(answer, labels):
    assert chosen(answer, labels) in [None, *labels]
