"""First rules for the kind of a memory."""

import pytest

from memory_manage.classify import classify
from memory_tool.model import MemoryType


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("客户张先生偏好蓝色系产品", MemoryType.PREFERENCE),
        ("She prefers tea to coffee", MemoryType.PREFERENCE),
        ("2025年7月3日在上海开会", MemoryType.EVENT),
        ("We had a meeting with the bank yesterday", MemoryType.EVENT),
        ("Step 1: open the valve. Step 2: wait.", MemoryType.PROCEDURE),
        ("回头看，教训是先写测试", MemoryType.REFLECTION),
        ("The cache holds a thousand entries", MemoryType.SEMANTIC),
        ("知识" * 400, MemoryType.KNOWLEDGE),
    ],
)
def test_rules_name_a_type_and_a_reason(text: str, kind: MemoryType) -> None:
    """Both languages; a type without a reason could not be explained."""
    found = classify(text)

    assert found.type is kind
    assert found.reason
    assert 0 < found.confidence <= 1


def test_a_message_is_a_conversation() -> None:
    """Whatever it says, it was said in a dialogue."""
    assert classify("I like tea", in_conversation=True).type is MemoryType.CONVERSATION
