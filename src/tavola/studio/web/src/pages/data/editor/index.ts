// Editor: the drawer in which one item is looked at and edited.
export { ItemDrawer } from "./item_drawer";
