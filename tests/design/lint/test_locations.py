"""Locations of findings in source files."""

from __future__ import annotations

from tavola.design.findings import DesignPath
from tavola.design.lint.locations import SourceFile, SourceLocation, locate_place


def test_a_terraform_table_is_found_where_it_is_declared() -> None:
    """An alarm that mentions the table, in a file that comes first, is not its declaration."""
    alarms = SourceFile("alarms.tf", "locals {\n  table = aws_dynamodb_table.desk.name\n}\n")
    tables = SourceFile("tables.tf", '# tables\n\nresource "aws_dynamodb_table" "desk" {\n}\n')

    assert locate_place(DesignPath("table", "desk", "desk"), {}, [alarms, tables]) == SourceLocation(
        "tables.tf", 3
    )
    assert locate_place(DesignPath("table", "desk", "desk"), {}, [alarms]) == SourceLocation("alarms.tf", 2)
