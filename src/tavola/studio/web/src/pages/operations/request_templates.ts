// RequestTemplates: a request of each operation to start from, for the first table.
import { session } from "../../app/session";

type Json = Record<string, unknown>;

/** Return a request of an operation as JSON, with the keys of the first table. */
export function templateOf(operation: string): string {
  return JSON.stringify(requestOf(operation), null, 2);
}

function requestOf(operation: string): Json {
  const table = session.value?.tables.find((each) => each.status !== "MISSING");
  const TableName = table?.name ?? "Table";
  const keys = table?.keys ?? [];
  const Key = Object.fromEntries(keys.map((each) => [each.name, { [each.type]: each.type === "N" ? "1" : "…" }]));
  const hash = keys[0];
  const first = {
    ExpressionAttributeNames: { "#k": hash?.name ?? "pk" },
    ExpressionAttributeValues: { ":k": { [hash?.type ?? "S"]: "…" } },
  };
  switch (operation) {
    case "GetItem":
    case "DeleteItem":
      return { TableName, Key };
    case "PutItem":
      return { TableName, Item: Key };
    case "UpdateItem":
      return { TableName, Key, UpdateExpression: "SET seen = :t", ExpressionAttributeValues: { ":t": { BOOL: true } } };
    case "Query":
      return { TableName, KeyConditionExpression: "#k = :k", ...first };
    case "BatchGetItem":
      return { RequestItems: { [TableName]: { Keys: [Key] } } };
    case "BatchWriteItem":
      return { RequestItems: { [TableName]: [{ PutRequest: { Item: Key } }] } };
    case "TransactGetItems":
      return { TransactItems: [{ Get: { TableName, Key } }] };
    case "TransactWriteItems":
      return { TransactItems: [{ Put: { TableName, Item: Key } }] };
    case "ExecuteStatement":
      return { Statement: `SELECT * FROM "${TableName}" WHERE "${hash?.name ?? "pk"}" = '…'` };
    case "ListTables":
      return {};
    default:
      return { TableName };
  }
}
