"""JavaScript for the page, where ``app`` is ComfyUI's own object."""

READY = """
    // Last of all the page opens a workflow of its own, which would replace one opened before.
    return !!(window.LiteGraph?.registered_node_types?.TokenMerge
        && window.app?.extensionManager?.workflow?.activeWorkflow);
"""

CALL = """
    const args = [...arguments], done = args.pop();
    (async () => {{ {} }})().then(
        (value) => done({{value: value ?? null}}),
        (error) => done({{error: String(error.stack ?? error)}}));
"""

LISTEN = """
    window.told = [];
    window.ended = [];
    window.cached = [];
    const listen = (name, act) => app.api.addEventListener(name, (event) => act(event.detail));
    listen('progress_text', ({nodeId, text}) => told.push([nodeId, text]));
    listen('execution_cached', ({nodes}) => cached.push(nodes));
    for (const name of ['execution_success', 'execution_error', 'execution_interrupted'])
        listen(name, () => ended.push(name));
"""

OPEN = """
    app.canvas.setGraph(app.rootGraph);
    // The page may still ask which models of the workflow before are missing. An empty workflow
    // ends that, so that they are not told beside the errors of this graph.
    await app.loadGraphData({version: 0.4, nodes: [], links: []});
    // In its next frame the page fits the view to that workflow.
    await new Promise(requestAnimationFrame);
    await app.loadApiJson(args[0], 'test');  // of newer pages it returns early
    // Else each run would change the seeds, and nothing would be the same in the next one.
    for (const node of app.graph.nodes)
        for (const widget of node.widgets ?? [])
            if (widget.name === 'control_after_generate') widget.value = 'fixed';
"""

REPEAT_AT_ONCE = """
    // What our script does again and again, it does before the page has a graph too, as where
    // another pack takes seconds to load.
    window.failed = [];
    const repeat = window.setInterval;
    window.setInterval = (act, ...rest) => {
        try {
            if (new Error().stack.includes('earlier_text.js')) act();
        } catch (error) {
            failed.push(String(error));
        }
        return repeat(act, ...rest);
    };
"""

FAIL_AT_ONCE = """
    const node = app.canvas.graph.getNodeById(arguments[0]), detail = {prompt_id: 'failed'};
    app.api.dispatchEvent(new CustomEvent('execution_start', {detail}));
    node.removeWidget(node.widgets.find(({name}) => name === '$$node-text-preview'));
"""

SET = """
    const [id, values] = args, {widgets} = app.canvas.graph.getNodeById(id);
    for (const name in values) widgets.find((each) => each.name === name).value = values[name];
"""

CENTRE = """
    app.canvas.ds.scale = 1;
    app.canvas.centerOnNode(app.canvas.graph.getNodeById(arguments[0]));
    app.canvas.setDirty(true, true);
"""

READ_TEXT = r"""
    const node = app.canvas.graph.getNodeById(arguments[0]);
    const widget = node.widgets.find(({name}) => name === '$$node-text-preview');
    if (!widget) return null;
    const [x, y, width, height] = node.boundingRect;
    const canvas = app.canvas.canvas.getBoundingClientRect();
    const place = (point) => app.canvas.ds.convertOffsetToCanvas(point);
    const [left, top] = place([x, y]), [right, bottom] = place([x + width, y + height]);
    const inside = (box) => box.height > 0
        && box.left >= canvas.left + left && box.right <= canvas.left + right
        && box.top >= canvas.top + top && box.bottom <= canvas.top + bottom;
    const words = (text) => text.split(/\s+/).join(' ').trim();
    // The classic look has its texts in one layer over the canvas, the newer one in each node.
    const kinds = '.dom-widget, [data-node-id="' + node.id + '"] .widget-markdown';
    const shown = [...document.querySelectorAll(kinds)].find((each) =>
        words(each.innerText) === words(widget.value) && inside(each.getBoundingClientRect()));
    if (!shown) return null;
    const range = document.createRange(), end = shown.getBoundingClientRect().bottom;
    range.selectNodeContents(shown);
    const middles = [...range.getClientRects()].map((line) => (line.top + line.bottom) / 2);
    const lines = new Set(middles.filter((middle) => middle < end).map(Math.round));
    return {text: shown.innerText.trim(), seen: lines.size};
"""

KINDS_WITH_TEXT = """
    const isText = ({name}) => name === '$$node-text-preview';
    return app.graph.nodes.filter(({widgets}) => widgets?.some(isText)).map(({type}) => type);
"""

OPENED = """
    // The kinds of nodes that the page does not know, and where each node is; once there are any.
    const nodes = app.graph.nodes;
    return nodes.length === 0 ? null : {
        unknown: nodes.map(({type}) => type).filter((t) => !LiteGraph.registered_node_types[t]),
        boxes: nodes.map(({boundingRect: [x, y, width, height]}) => [x, y, x + width, y + height]),
    };
"""

CLASSIC_WIDGETS = """
    const node = app.graph.getNodeById(arguments[0]);
    return node.widgets.filter((widget) => node.isWidgetVisible(widget)).map(({name}) => name);
"""

NEWER_WIDGETS = r"""
    const node = app.graph.getNodeById(arguments[0]);
    const drawn = document.querySelector(`[data-node-id="${node.id}"]`);
    const title = drawn?.querySelector('[data-testid=node-title]');
    if (title?.innerText !== node.title) return null; // a graph from before is still there
    const rows = drawn.querySelectorAll('[data-testid=node-widget]');
    const names = [...rows].map((row) => row.innerText.split('\n')[0]);
    return names.every(Boolean) ? names : null; // else some are still to be drawn
"""

WIDGET_PLACE = r"""
    // Where on the screen the value of a node's widget is.
    const [id, wanted] = arguments, node = app.canvas.graph.getNodeById(id);
    const drawn = document.querySelector(`[data-node-id="${node.id}"]`);
    if (drawn) {
        const rows = [...drawn.querySelectorAll('[data-testid=node-widget]')];
        const row = rows.find((each) => each.innerText.split('\n')[0] === wanted);
        const box = row.querySelector('input').getBoundingClientRect();
        return [(box.left + box.right) / 2, (box.top + box.bottom) / 2].map(Math.round);
    }
    const {last_y, y} = node.widgets.find(({name}) => name === wanted);
    const {left, top} = app.canvas.canvas.getBoundingClientRect();
    const middle = [node.pos[0] + 0.7 * node.size[0], node.pos[1] + (last_y ?? y) + 10];
    const [x, down] = app.canvas.ds.convertOffsetToCanvas(middle);
    return [Math.round(left + x), Math.round(top + down)];
"""

SELECT = """
    app.canvas.deselectAll();
    app.canvas.select(app.canvas.graph.getNodeById(arguments[0]));
    app.canvas.canvas.focus();
"""

MAKE_SUBGRAPH = """
    const nodes = args[0].map((id) => app.graph.getNodeById(id));
    const {subgraph, node} = app.graph.convertToSubgraph(new Set(nodes));
    app.canvas.openSubgraph(subgraph, node);
"""

SLOTS = """
    // Where on the screen a node's slots are: (inputs, outputs).
    const node = app.canvas.graph.getNodeById(arguments[0]);
    const {left, top} = app.canvas.canvas.getBoundingClientRect();
    const place = (point) => {
        const [x, y] = app.canvas.ds.convertOffsetToCanvas(point);
        return [Math.round(left + x), Math.round(top + y)];
    };
    return {
        inputs: Object.fromEntries(node.inputs.map(
            ({name}, number) => [name, place(node.getInputPos(number))])),
        outputs: Object.fromEntries(node.outputs.map(
            ({name}, number) => [name, place(node.getOutputPos(number))])),
    };
"""

ARRANGE = """
    // Places and sizes of nodes: id -> [left, top, width, height], and where on the canvas their
    // origin is. Returns the box of all of them on the screen.
    const {left, top} = app.canvas.canvas.getBoundingClientRect();
    for (const [id, [x, y, width, height]] of Object.entries(args[0])) {
        const node = app.graph.getNodeById(id);
        node.pos = [x, y];
        node.setSize([width, height]);
    }
    const [right, down] = args[1];
    Object.assign(app.canvas.ds, {scale: 1, offset: args[1]});
    app.canvas.setDirty(true, true);
    const boxes = app.graph.nodes.map(({boundingRect: [x, y, width, height]}) => [
        x, y, x + width, y + height]);
    const edge = (number, pick) => Math.round(pick(...boxes.map((box) => box[number])));
    return [
        left + right + edge(0, Math.min), top + down + edge(1, Math.min),
        left + right + edge(2, Math.max), top + down + edge(3, Math.max)];
"""

PICTURE_IS_DRAWN = """
    const drawn = document.querySelector('[data-testid=main-image]');
    return (drawn ?? app.graph.getNodeById(arguments[0]).imgs?.[0])?.naturalWidth > 0;
"""

NAMES = """
    // Of a node in the page's language: its title, and each input with its name on the page.
    const node = app.graph.getNodeById(arguments[0]);
    const shown = (slot) => slot.widget
        ? node.widgets.find(({name}) => name === slot.widget.name).label
        : slot.label ?? slot.localized_name;
    return [node.title, Object.fromEntries(node.inputs.map((each) => [each.name, shown(each)]))];
"""
