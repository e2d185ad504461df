/* Trees in brackets, (S (NP the cat) (VP sat)): what stands first in a bracket is its label. The network goes from
   node to node, children first. */
const nodeOf = (own) => ({ label: "", word: "", children: [], bare: false, ...own });

function closedNode(node) {
    const { label, children } = node;
    if (!children.length && !label) throw new Error("expected a word or a bracket inside of ()");
    if (!children.length) return nodeOf({ word: label });
    return children.length === 1 && children[0].bare && label ? nodeOf({ label, word: children[0].word }) : node;
}

const SYMBOL = patternOf("[()]|[^\\s()]+", "gu");
function refuseLarge(text, { longest, deepest }) {
    if (typeof text !== "string") throw refused("a tree in brackets, (…)", text);
    const count = [...text].length;
    if (count > longest) throw new Error(`expected at most ${longest} characters, got ${count}`);
    let open = 0, most = 0;
    for (const sign of text) if (sign === "(") most = Math.max(most, ++open); else if (sign === ")") open--;
    if (most > deepest) throw new Error(`expected brackets nested at most ${deepest} deep, got ${most}`);
}

function readTree(text) {
    const waiting = [];
    let done = null, fresh = false;
    for (const symbol of text.match(SYMBOL) || []) {
        if (done || (!waiting.length && symbol !== "(")) throw new Error(`expected one tree in brackets, (…), got ${symbol}`);
        const top = waiting[waiting.length - 1];
        if (symbol === "(") waiting.push(nodeOf());
        else if (symbol === ")") {
            const node = closedNode(waiting.pop());
            if (waiting.length) waiting[waiting.length - 1].children.push(node);
            else done = node;
        } else if (fresh) top.label = symbol;
        else top.children.push(nodeOf({ word: symbol, bare: true }));
        fresh = symbol === "(";
    }
    if (!done) throw new Error("expected a tree in brackets, (…), with all of them closed");
    while (!done.label && done.children.length === 1 && !done.children[0].bare) [done] = done.children;
    return done;
}

const nodesOf = (root) => [root, ...root.children.flatMap(nodesOf)];

function nodeValues(node, root, step) {
    if (!TABLES.has(step)) TABLES.set(step, { words: { vocabulary: step.words }, inner: step.inner && { vocabulary: step.inner } });
    const { words, inner } = TABLES.get(step), word = step.lower ? node.word.toLowerCase() : node.word;
    const found = { words: word ? lookUp(word, words) : 0, labels: inner && node !== root && node.label ? lookUp(node.label, inner) : 0, children: [node.children.length] };
    for (const [name, size] of Object.entries(step.states)) {
        const below = Array.from({ length: 3 }, () => new Array(size).fill(0)), last = node.children.length - 1;
        node.children.forEach((child, k) => child.states[name.replace("below", "state")].forEach((v, j) => { below[k === 0 ? 0 : k === last ? 2 : 1][j] += v; }));
        found[name] = below;
    }
    return found;
}

STEPS.brackets = (values, step) => {
    refuseLarge(values[step.from], step);
    const root = readTree(values[step.from]), nodes = nodesOf(root).reverse();
    Object.assign(values, { root, nodes, reads: step }, nodeValues(nodes[0], root, step));
};

function asBrackets(node, root, whole) {
    if (node.bare) return node.word;
    const label = !whole ? node.answer : node === root ? "" : node.label;
    return `(${[label, node.word, ...node.children.map((own) => asBrackets(own, root, whole))].filter(Boolean).join(" ")})`;
}

AFTER.nodes = (found, { labels }) => {
    const { root, nodes, reads } = found.values;
    let made = found.values;
    nodes.forEach((node, number) => {
        if (number) made = runGraph(GRAPHS.node, inputsOf(nodeValues(node, root, reads), "node"));
        node.states = Object.fromEntries(Object.entries(made).filter(([name]) => name.startsWith("state_")).map(([name, own]) => [name, [...own.data]]));
        if (!labels) return;
        node.p = [...made.probabilities.data];
        node.answer = labels[node.p.indexOf(Math.max(...node.p))];
    });
    if (!labels) { Object.assign(found.values, made); return; }
    found.label = root.answer;
    found.probabilities = Object.fromEntries(labels.map((name, k) => [name, root.p[k]]));
    found.tree = asBrackets(root, root, reads.inner !== null);
};

/* Before the network: from the leaves to the root, whose vectors are its inputs. */
STEPS.climb = (values, { graph, vectors, words }) => {
    const { root, nodes, reads } = values;
    let made = values;
    for (const node of nodes) {
        made = runGraph(GRAPHS[graph], inputsOf(nodeValues(node, root, reads), graph));
        node.states = Object.fromEntries(Object.entries(made).filter(([name]) => name.startsWith("state_")).map(([name, own]) => [name, [...own.data]]));
    }
    for (const name of vectors) values[name] = [...made[name].data];
    values[words] = nodesOf(root).map((node) => node.word).filter(Boolean);
};
