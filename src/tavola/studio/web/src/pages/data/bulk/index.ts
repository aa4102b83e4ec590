// Bulk: many items at once.
export { BulkBar } from "./bulk_bar";
export { BulkDialog } from "./bulk_dialog";
