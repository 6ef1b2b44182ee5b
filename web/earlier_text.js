// Marks what our nodes say as old when a prompt is queued or starts, and when an input of the node
// changes or the node is bypassed. Takes it off other nodes.
import { api } from "../../scripts/api.js";
import { app } from "../../scripts/app.js";

const OURS = /^(Token(Merge|Downsample)(Advanced)?|TokenReductionCompare)$/;
const TEXT = "$$node-text-preview"; // the page's own name of the widget
const EARLIER = "Earlier run: ";
const END = "  "; // no other pack's texts end so
const SETTLED = END + " "; // a text that no run makes old, only other inputs
const queued = new WeakMap(); // what each node was given in the last prompt
const given = ({ mode, inputs, widgets }) => JSON.stringify([
    mode,
    inputs?.map(({ link }) => link),
    widgets?.filter(({ name }) => name !== TEXT).map(({ value }) => value),
]);

function forEachNode(change) {
    if (!app.graph) return; // the page still loads what other packs have for it
    const root = app.rootGraph ?? app.graph;
    for (const graph of [root, ...(root.subgraphs?.values() ?? [])])
        for (const node of graph.nodes.filter(({ type }) => OURS.test(type)))
            change(node, node.widgets?.find(({ name }) => name === TEXT));
}

function mark(isOld) {
    forEachNode((node, text) => {
        if (isOld(node) && text?.value && !text.value.startsWith(EARLIER))
            text.value = EARLIER + text.value;
    });
}

const changed = (node) => queued.has(node) && queued.get(node) !== given(node);
api.addEventListener("promptQueueing", () => mark((node) => queued.set(node, given(node))));
api.addEventListener("execution_start", () => mark(() => true));
// These nodes are not run again, since nothing that they get has changed. The number of a node in a
// subgraph has the subgraph's before it.
api.addEventListener("execution_cached", ({ detail: { nodes } }) => {
    const cached = new Set(nodes.map((id) => `${id}`.split(":").at(-1)));
    forEachNode((node, text) => {
        if (cached.has(`${node.id}`) && text?.value?.endsWith(SETTLED))
            text.value = text.value.replace(EARLIER, "");
    });
});
// No event of the page tells of every change in both looks of the nodes.
setInterval(() => mark(changed), 300);

// The page shows a text on whichever node has the number in the graph that it shows, and that may be
// another workflow than the one that runs. At once, so that the node does not grow.
api.addEventListener("progress_text", ({ detail: { nodeId, text } }) => queueMicrotask(() => {
    const node = app.canvas?.graph?.getNodeById(nodeId);
    const shown = node?.widgets?.find(({ name }) => name === TEXT);
    if (shown && !OURS.test(node.type) && text.endsWith(END)) node.removeWidget(shown);
}));
