// Transfer: items from files and to files.
export { TransferMenu } from "./transfer_menu";
