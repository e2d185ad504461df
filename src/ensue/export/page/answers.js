
/* How an answer is shown, by the step that made it. `share`: how much of it another answer loses. */
const hue = (name) => {
    const kinds = [...new Set(MODEL.after[0].labels.map((own) => own.replace(/^[BIESLU]-/, "")))];
    return Math.round(360 * kinds.indexOf(name.replace(/^[BIESLU]-/, "")) / Math.max(1, kinds.length));
};

const ANSWERS = {
    labels: {
        show: (place, found) => {
            const step = MODEL.after[0], chosen = step.several ? found.label : [found.label];
            bars(place, step.labels.map((name, k) => [name, found.probabilities[k]]), (k) => chosen.includes(step.labels[k]));
        },
        share: (found) => {
            const top = found.probabilities.indexOf(Math.max(...found.probabilities));
            return (other) => found.probabilities[top] - other.probabilities[top];
        },
        hint: (found) => {
            const top = found.probabilities.indexOf(Math.max(...found.probabilities));
            return `Blue words speak for “${MODEL.after[0].labels[top]}”, orange ones against it. Press a word to try another in its place.`;
        },
    },
    number: {
        show: (place, found) => {
            const range = made("p", "hint", `between ${figure(found.low)} and ${figure(found.high)} with probability ${percent(found.share)}`);
            place.replaceChildren(made("p", "large", figure(found.value)), range);
        },
        share: (found) => (other) => (found.value - other.value) / Math.max(1e-9, found.high - found.low),
        hint: () => "Blue words make the number larger, orange ones smaller. Press a word to try another in its place.",
    },
    nodes: {
        show: (place, found) => {
            const rows = made("div"), whole = found.values.reads.inner !== null, shownAs = (own) => (whole ? own.label : own.answer);
            const drawn = (own) => {
                const box = made("span", own.bare ? "" : "node", own.word);
                if (own.bare) return box;
                const label = made("small", "", own === found.values.root ? found.label : shownAs(own));
                box.append(...own.children.map(drawn), label);
                box.style.setProperty("--hue", hue(label.textContent));
                if (own.p) box.title = `${own.answer}: ${percent(Math.max(...own.p))}`;
                return box;
            };
            bars(rows, Object.entries(found.probabilities), (k) => Object.keys(found.probabilities)[k] === found.label);
            const tree = made("div", "tree");
            tree.append(drawn(found.values.root));
            place.replaceChildren(rows, tree);
        },
    },
    chain: {
        show: (place, found) => {
            const line = made("div", "tagged");
            line.append(...found.labels.map((label, t) => {
                const own = made("span", "tag"), name = made("small", "", label);
                own.append(document.createTextNode(shown(found.tokens[t] ?? String(t + 1))), name);
                own.style.setProperty("--hue", hue(label));
                own.classList.toggle("none", label === "O");
                own.title = `${label}: ${percent(found.probabilities[t])}`;
                return own;
            }));
            place.replaceChildren(line);
        },
        share: (found) => (other) => found.labels.reduce((sum, label, t) => {
            const k = MODEL.after[0].labels.indexOf(label);
            return sum + found.all[t][k] - (other.all[t] ? other.all[t][k] : 0);
        }, 0),
        hint: () => "Blue words speak for the labels above, orange ones against them. Press a word to try another in its place.",
    },
    surprise: {
        brief: (place, found) => {
            const next = made("div", "next");
            bars(next, Object.entries(found.next), (k) => k === 0, 3);
            place.replaceChildren(made("p", "hint", `${found.bits.reduce((a, b) => a + b, 0).toFixed(1)} bits in all. Next:`), next);
        },
        show: (place, found) => {
            const line = made("div", "tokens"), next = made("div", "next"), rows = Object.entries(found.next);
            line.append(...found.tokens.map((token, t) => {
                const own = made("span", "token", shown(token));
                own.style.setProperty("--share", Math.min(0.6, found.bits[t] / 24).toFixed(3));
                own.style.setProperty("--tone", "var(--minus)");
                own.title = `${found.bits[t].toFixed(2)} bits`;
                return own;
            }));
            bars(next, rows, (k) => k === 0);
            const choose = made("div", "tokens"), field = FIELDS.text, { between, word: sign } = MODEL.after[0];
            const joint = (text, word) => (sign ? text + word.replaceAll(sign, " ") : text + (text && between && !text.endsWith(between) ? between : "") + word);
            choose.append(...rows.map(([word]) => {
                const own = made("button", "plain", shown(word));
                own.type = "button";
                own.addEventListener("click", () => { field.value = joint(field.value, word); show(); field.focus(); });
                return own;
            }));
            const more = made("button", "plain", "Write on");
            more.type = "button";
            more.addEventListener("click", () => { field.value = wordsAfter(field.value, 20, 0.8); show(); });
            const total = found.bits.reduce((a, b) => a + b, 0);
            place.replaceChildren(line, made("p", "hint", `${total.toFixed(1)} bits in all; a word is the more orange the more it surprises. Next:`), next, choose, more);
        },
    },
    search: {
        show: (place, found) => {
            const source = found.values.tokens, grid = made("table", "aligned");
            place.replaceChildren(found.text ? made("p", "large", found.text) : made("p", "nothing", "No words: the model ends at once."));
            if (!found.tokens.length || !found.looked.length || !found.looked[0].length || !source) return;
            const head = made("tr");
            head.append(made("th"), ...source.map((token) => made("th", "", shown(token))));
            grid.append(head, ...found.tokens.map((token, t) => {
                const row = made("tr");
                row.append(made("th", "", shown(token)), ...source.map((_, k) => {
                    const cell = made("td");
                    cell.style.setProperty("--share", found.looked[t][k].toFixed(3));
                    cell.title = percent(found.looked[t][k]);
                    return cell;
                }));
                return row;
            }));
            const scroll = made("div", "scroll");
            scroll.append(grid);
            place.append(made("p", "hint", "Where each word of the answer (row) looked in the source (column):"), scroll);
        },
    },
};
