// Parts: the components that pages are made of.
export * from "./controls";
export * from "./display";
export * from "./feedback";
export * from "./overlays";
export { Prose } from "./prose";
export { type Series, TimeChart } from "./time_chart";
export * from "./values";
export { useVirtualWindow, type VirtualHandle, VirtualRows } from "./virtual_rows";
