"""Checks of answers. They must accept the answers of the sample data generator."""

import pytest
from generate import rows

from forge_compute.checks import contains_answer


@pytest.mark.parametrize(
    ("instruction", "response", "right"),
    [
        ("What is 12 + 7?", "It is 19.", True),
        ("What is 12 + 7?", "It is 190.", False),
        ("What is 12 - 20?", "-8", True),
        ("What is 1,000 * 3?", "3,000", True),
        ("What is 1 / 8?", "0.125", True),
        ("Convert 3 feet to inches.", "36 inches", True),
        ("Convert 90 minutes to hours.", "1.5 hours", True),
        ("Convert 90 minutes to hours.", "1.50 hours", False),
        ("Convert 3 feet to grams.", "7", None),
        ("How many days lie between 2024-02-28 and 2024-03-01?", "2 days", True),
        ("Which date is 1 days after 2023-02-28?", "2023-03-01", True),
        ("Which date is 1 days before 2024-03-01?", "2024-02-28", False),
        ("How many days lie between 2024-02-30 and 2024-03-01?", "2", None),
        ("Write a poem.", "Roses are red.", None),
        ("Describe it in 1-2 sentences.", "It is open.", None),
        ("Who is on call 24/7?", "Nobody.", None),
        ("Transpose a 3x4 matrix.", "It has 4 rows.", None),
        ("In 1-2 words: what is 2 + 3?", "Five: 5", True),
        ("What is 12-20?", "-8", True),
        ("Calculate: 7/2", "3.5", True),
        ("What is 2 + 3 * 4?", "14", None),
        ("What is (2 + 3) * 4?", "20", None),
        ("What is 2 * (3 + 4)?", "14", None),
        ("What is 2 + 3?", "5", True),
        ("What is 50 + 10%?", "55", None),
    ],
)
def test_is_right(instruction: str, response: str, right: bool | None) -> None:
    assert contains_answer(instruction, response) is right


def test_all_sample_rows_can_be_checked_and_about_5_percent_are_wrong() -> None:
    verdicts = [contains_answer(row["instruction"], row["response"]) for row in rows(4_000)]
    assert None not in verdicts
    wrong = verdicts.count(False) / len(verdicts)
    assert 0.03 < wrong < 0.07
