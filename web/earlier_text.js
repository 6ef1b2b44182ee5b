// Marks what our nodes say as old when a prompt is queued or starts, and when an input of the node
// changes or the node is bypassed. Keeps it after the run, and takes it off other nodes.
import { api } from "../../scripts/api.js";
import { app } from "../../scripts/app.js";

const OURS = /^(Token(Merge|Downsample)(Advanced)?|TokenReductionCompare)$/;
const TEXT = "$$node-text-preview"; // the page's own name of the widget
const EARLIER = "Earlier run: ";
const END = "  "; // no other pack's texts end so
const SETTLED = END + " "; // a text that no run makes old, only other inputs
const queued = new WeakMap(); // what each node was given in the last prompt
const said = new WeakMap(); // the text of each node, as in the event that brought it or marked
const given = ({ mode, inputs, widgets }) => JSON.stringify([
    mode,
    inputs?.map(({ link }) => link),
    widgets?.filter(({ name }) => name !== TEXT).map(({ value }) => value),
]);
const numberInGraph = (id) => `${id}`.split(":").at(-1); // those of its subgraphs stand before it
const findText = (node) => node?.widgets?.find(({ name }) => name === TEXT);

function forEachNode(change) {
    if (!app.graph) return; // the page still loads what other packs have for it
    const root = app.rootGraph ?? app.graph;
    for (const graph of [root, ...(root.subgraphs?.values() ?? [])])
        for (const node of graph.nodes.filter(({ type }) => OURS.test(type)))
            change(node, findText(node));
}

function write(node, text, value) {
    text.value = value;
    if (said.has(node)) said.get(node).text = value;
}

function mark(isOld) {
    forEachNode((node, text) => {
        if (isOld(node) && text?.value && !text.value.startsWith(EARLIER))
            write(node, text, EARLIER + text.value);
    });
}

const changed = (node) => queued.has(node) && queued.get(node) !== given(node);
api.addEventListener("promptQueueing", () => {
    forEachNode((node) => queued.set(node, given(node)));
    mark(() => true);
});
api.addEventListener("execution_start", () => mark(() => true));
// These nodes are not run again, since nothing that they get has changed.
api.addEventListener("execution_cached", ({ detail: { nodes } }) => {
    const cached = new Set(nodes.map(numberInGraph));
    forEachNode((node, text) => {
        if (cached.has(`${node.id}`) && text?.value?.endsWith(SETTLED))
            write(node, text, text.value.replace(EARLIER, ""));
    });
});

// Pages since 1.54 take all texts off the nodes when a run ends. Ours say how it went.
function restore() {
    forEachNode((node, text) => {
        if (!text && said.has(node) && node.graph === app.canvas?.graph)
            api.dispatchEvent(new CustomEvent("progress_text", { detail: said.get(node) }));
    });
}

for (const end of ["execution_success", "execution_error", "execution_interrupted"])
    api.addEventListener(end, () => setTimeout(restore));
// No event of the page tells of every change in both looks of the nodes.
setInterval(() => { mark(changed); restore(); }, 300);

// The page shows a text on whichever node has the number in the graph that it shows, and that may be
// another workflow than the one that runs. At once, so that the node does not grow.
api.addEventListener("progress_text", ({ detail: { nodeId, text } }) => queueMicrotask(() => {
    const node = app.canvas?.graph?.getNodeById(numberInGraph(nodeId));
    const shown = findText(node);
    if (shown?.value !== text || !text.endsWith(END)) return;
    if (OURS.test(node.type)) said.set(node, { nodeId, text });
    else node.removeWidget(shown);
}));
