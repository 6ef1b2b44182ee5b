// Keeps on our nodes what they say, and marks it as of an earlier run as soon as a prompt is queued
// or starts, an input of the node changes, or the node is bypassed.
import { api } from "../../scripts/api.js";
import { app } from "../../scripts/app.js";

const OURS = /^(Token(Merge|Downsample)(Advanced)?|TokenReductionCompare)$/;
const NAME = "$$node-text-preview"; // the page's own name of the widget
const EARLIER = "Earlier run: ";
const END = "  "; // no other pack's texts end so
const SETTLED = END + " "; // a text that no run makes old, only other inputs
const said = new WeakMap(); // node -> the event that brought its text, its inputs then, isOld
const findWidget = (node) => node.widgets?.find(({ name }) => name === NAME);
const numberInGraph = (id) => `${id}`.split(":").at(-1); // those of its subgraphs stand before it
const readInputs = ({ mode, inputs, widgets }) => JSON.stringify([
    mode,
    inputs?.map(({ link }) => link),
    widgets?.filter(({ name }) => name !== NAME).map(({ value }) => value),
]);

function find(node) {
    if (!said.has(node)) said.set(node, { inputs: readInputs(node) });
    return said.get(node);
}

function forEachNode(act) {
    const root = app.rootGraph ?? app.graph; // none while the page loads
    const graphs = root ? [root, ...(root.subgraphs?.values() ?? [])] : [];
    for (const node of graphs.flatMap(({ nodes }) => nodes))
        if (OURS.test(node.type)) act(node, find(node));
}

const refresh = () => forEachNode((node, { event, inputs, isOld }) => {
    if (!event || node.graph !== app.canvas?.graph) return;
    // Pages since 1.54 take all texts off the nodes when a run ends.
    if (!findWidget(node)) api.dispatchEvent(new CustomEvent("progress_text", { detail: event }));
    const mark = isOld || inputs !== readInputs(node) ? EARLIER : "";
    if (findWidget(node)) findWidget(node).value = mark + event.text;
});

api.addEventListener("promptQueueing", () => forEachNode((node, text) => {
    Object.assign(text, { inputs: readInputs(node), isOld: true });
}));
api.addEventListener("execution_start", () => forEachNode((node, text) => text.isOld = true));
// These nodes are not run again, since nothing that they get has changed.
api.addEventListener("execution_cached", ({ detail: { nodes } }) => forEachNode((node, text) => {
    if (text.event?.text.endsWith(SETTLED) && nodes.map(numberInGraph).includes(`${node.id}`))
        text.isOld = false;
}));
setInterval(refresh, 100); // no event of the page tells of every change in both looks of the nodes

// The page shows a text on whichever node has the number in the graph that it shows, and that may be
// another workflow than the one that runs. At once, so that the node does not grow.
api.addEventListener("progress_text", ({ detail: event }) => queueMicrotask(() => {
    const node = app.canvas?.graph?.getNodeById(numberInGraph(event.nodeId));
    const widget = node && findWidget(node);
    if (widget?.value !== event.text || !event.text.endsWith(END)) return;
    if (!OURS.test(node.type)) node.removeWidget(widget);
    else if (find(node).event !== event) Object.assign(find(node), { event, isOld: false });
}));
