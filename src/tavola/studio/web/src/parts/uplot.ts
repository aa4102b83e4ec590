// uPlot with its stylesheet, in a file of its own: pages without charts do not load it.
import "uplot/dist/uPlot.min.css";
import UPlot from "uplot";

export { UPlot };
