// Keeps on our nodes what they say, and marks it as of an earlier run as soon as a prompt is queued
// or starts, an input of the node changes, or the node is bypassed.
import { api } from "../../scripts/api.js";
import { app } from "../../scripts/app.js";

const OURS = /^(Token(Merge|Downsample)(Advanced)?|TokenReductionCompare)$/;
const TEXT = "$$node-text-preview"; // the page's own name of the widget
const EARLIER = "Earlier run: ";
const END = "  "; // no other pack's texts end so
const SETTLED = END + " "; // a text that no run makes old, only other inputs
const queued = new WeakMap(); // node -> its inputs in the last prompt
const said = new WeakMap(); // node -> the event that brought its text, and the inputs of that text
const findText = (node) => node.widgets?.find(({ name }) => name === TEXT);
const numberInGraph = (id) => `${id}`.split(":").at(-1); // those of its subgraphs stand before it
const readInputs = ({ mode, inputs, widgets }) => JSON.stringify([
    mode,
    inputs?.map(({ link }) => link),
    widgets?.filter(({ name }) => name !== TEXT).map(({ value }) => value),
]);

function listNodes() {
    const root = app.rootGraph ?? app.graph; // none while the page loads
    const graphs = root ? [root, ...(root.subgraphs?.values() ?? [])] : [];
    return graphs.flatMap(({ nodes }) => nodes).filter(({ type }) => OURS.test(type));
}

function refresh() {
    for (const node of listNodes()) {
        const { detail, inputs } = said.get(node) ?? {};
        if (!detail || node.graph !== app.canvas?.graph) continue;
        // Pages since 1.54 take all texts off the nodes when a run ends.
        if (!findText(node)) api.dispatchEvent(new CustomEvent("progress_text", { detail }));
        const mark = inputs === readInputs(node) ? "" : EARLIER;
        if (findText(node)) findText(node).value = mark + detail.text;
    }
}

function listen(event, change) {
    api.addEventListener(event, ({ detail }) => {
        for (const node of listNodes()) change(node, said.get(node) ?? {}, detail);
        refresh();
    });
}

listen("promptQueueing", (node) => queued.set(node, readInputs(node)));
for (const event of ["promptQueueing", "execution_start"])
    listen(event, (node, text) => text.inputs = null);
// These nodes are not run again, since nothing that they get has changed.
listen("execution_cached", (node, text, { nodes }) => {
    if (text.detail?.text.endsWith(SETTLED) && nodes.map(numberInGraph).includes(`${node.id}`))
        text.inputs = queued.get(node);
});
setInterval(refresh, 100); // no event of the page tells of every change in both looks of the nodes

// The page shows a text on whichever node has the number in the graph that it shows, and that may be
// another workflow than the one that runs. At once, so that the node does not grow.
api.addEventListener("progress_text", ({ detail }) => queueMicrotask(() => {
    const node = app.canvas?.graph?.getNodeById(numberInGraph(detail.nodeId));
    const shown = node && findText(node);
    if (shown?.value !== detail.text || !detail.text.endsWith(END)) return;
    if (!OURS.test(node.type)) node.removeWidget(shown);
    else if (said.get(node)?.detail !== detail)
        said.set(node, { detail, inputs: queued.get(node) ?? readInputs(node) });
}));
