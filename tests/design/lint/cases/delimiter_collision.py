"""Texts that are joined as they are."""

from tests.design.builders import bare_number, date, design, entity, table, text


def _users(*fields, pk, foreign=True):
    return design(table(entity("User", *fields, pk=pk), foreign=foreign))


_TWO = (text("tenant", tenant=True), text("user"))

FOUND = _users(*_TWO, pk="{tenant}#{user}")
PLACES = ["User.Key"]
CLEAN = _users(*_TWO, pk="{tenant}#{user}", foreign=False)
ALSO_CLEAN = {
    "one free text": _users(date("day"), text("user"), pk="{day}#{user}"),
    "a number": _users(bare_number("shop"), text("user"), pk="{shop}#{user}"),
    "a word between what nobody is called": _users(text("shop"), text("user"), pk="SHOP#{shop}#USER#{user}"),
    "a tenant last": _users(text("region"), text("tenant", tenant=True), pk="R#{region}#TENANT#{tenant}"),
    "of one kind": _users(text("tenant", choices=("a", "b")), text("user"), pk="{tenant}#{user}"),
}
ALSO = {
    "no delimiter at all": _users(*_TWO, pk="U#{tenant}.{user}"),
    "a word between that a tenant may have": _users(*_TWO, pk="TENANT#{tenant}#USER#{user}"),
}
