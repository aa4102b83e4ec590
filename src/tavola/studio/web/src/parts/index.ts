// Parts: what pages are made of.
export {
  Button,
  Checkbox,
  IconButton,
  type Option,
  Segmented,
  Select,
  type Tab,
  Tabs,
  TextArea,
  TextInput,
} from "./controls";
export {
  ago,
  Badge,
  type Bar,
  Bars,
  bytes,
  cents,
  Chip,
  colourOf,
  counted,
  money,
  ms,
  num,
  orderColours,
  Panel,
  Split,
  Stat,
  Stats,
} from "./figures";
export { Confirm, Dialog, Drawer, Menu, type MenuItem } from "./layers";
export {
  Code,
  Copy,
  copyText,
  type DiffLine,
  DiffView,
  download,
  Empty,
  Notice,
  ProblemNotice,
  Progress,
  Spinner,
} from "./telling";
export { type Series, TimeChart } from "./time_chart";
export {
  base64Bytes,
  epochText,
  type KeyPart,
  KeyParts,
  shown,
  type Tag,
  TAG_NAMES,
  TAGS,
  taken,
  Value,
} from "./values";
export { type VirtualHandle, VirtualRows } from "./virtual";
