from tests.conformance.asking import *
def test_x(client, tables, ask):
    """x."""
    t = tables("pk sk:N", gsi={"g-1": "a b"})
    put(client, t, item(pk="a", sk=1, a="x"))
    assert get(client, t, pk="a", sk=1)
    print(client.describe_table(TableName=t))
    print(ask("GetItem", {"TableName": "nope"}))
    print(refused(client.get_item, TableName="nope", Key={}))
def test_y(client, tables, ask):
    """x."""
