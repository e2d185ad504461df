
/* How a question is asked, by the first step that is done to it. `build` makes the fields, with what
   stood in the address; `value` reads them; `empty` says where nothing is asked yet. */
function textField(label, text, changed, placeholder = "Type or paste a text…") {
    const field = made("textarea");
    field.spellcheck = false;
    field.placeholder = placeholder;
    field.setAttribute("aria-label", label);
    field.value = text || "";
    field.addEventListener("input", changed);
    return field;
}

const FIELDS = {};
const asText = {
    title: "Text",
    build: (place, begun, _, fields = FIELDS) => { fields.text = textField("Text", begun, show); place.append(fields.text); },
    value: (fields = FIELDS) => fields.text.value,
};

const untyped = () => !FIELDS.text.value.trim();
const asTree = {
    title: "A tree in brackets",
    build: (place, begun, _, fields = FIELDS) => { fields.text = textField("A tree in brackets", begun, show, "A tree in brackets: (S (NP the cat) (VP sat))"); place.append(fields.text); },
    value: (fields = FIELDS) => fields.text.value,
    empty: untyped,
};

const asNumbers = {
    title: "Numbers, one step a line",
    build: (place, begun, _, fields = FIELDS) => { fields.text = textField("Numbers, one step a line", begun, show, "The numbers of a step in each line: 0.5 -1.2 3"); place.append(fields.text); },
    empty: untyped,
    value: (fields = FIELDS) => fields.text.value.split("\n").filter((line) => line.trim()).map((line) => line.trim().split(/[\s,;]+/).map(Number)),
};

const QUESTIONS = {
    tokenise: asText,
    brackets: asTree,
    vectors: asNumbers,
    scale: asNumbers,
    pair: {
        title: "Two texts",
        build: (place, begun) => {
            const [first, second] = begun ? JSON.parse(begun) : ["", ""];
            FIELDS.pair = [textField("First text", first, show), textField("Second text", second, show)];
            place.append(...FIELDS.pair);
        },
        value: () => FIELDS.pair.map((field) => field.value),
    },
    row: {
        title: "A row",
        build: (place, begun, step = MODEL.before[0], into = FIELDS) => {
            const given = begun ? JSON.parse(begun) : {};
            const field = (name, own) => {
                const label = made("label", "field", name);
                own.addEventListener("input", show);
                label.append(own);
                into[name] = own;
                return label;
            };
            const begin = ({ reads, how, mean }) => (!reads ? String(Number(mean.toPrecision(3))) : how === "scaled" ? new Date(mean * DAY).toISOString().slice(0, 10) : "");
            const read = [...new Set(step.features.map((own) => own.name))].map((name) => {
                const own = made("input"), [first] = step.features.filter((other) => other.name === name).map(begin).filter(Boolean);
                own.value = given[name] ?? first ?? new Date().toISOString().slice(0, 10);
                return field(name, own);
            });
            const numbers = step.numbers.map(({ name, mean }) => {
                const own = made("input");
                own.inputMode = "decimal";
                own.value = given[name] ?? String(Number(mean.toPrecision(3)));
                return field(name, own);
            });
            const categories = step.categories.map(({ name, categories: known }) => {
                const own = made("select");
                own.append(...[...known, ...(given[name] !== undefined && !known.includes(given[name]) ? [given[name]] : [])].map((text) => {
                    const option = made("option", "", text || "(nothing)");
                    option.value = text;
                    return option;
                }));
                own.value = given[name] ?? known[0];
                return field(name, own);
            });
            const fields = made("div", "fields");
            fields.append(...numbers, ...categories, ...read);
            if (step.text) {
                const { name } = step.text;
                FIELDS[name] = textField(name, given[name], show);
                place.append(FIELDS[name]);
            }
            place.append(fields);
        },
        value: (fields = FIELDS) => Object.fromEntries(Object.entries(fields).map(([name, own]) => [name, own.value])),
    },
    picture: {
        title: "Picture: draw it, or choose a file",
        build: (place, begun, step = MODEL.before[0], fields = FIELDS) => {
            const [channels, height, width] = step.shape, zoom = Math.max(1, Math.floor(224 / Math.max(height, width)));
            const canvas = made("canvas", "drawing"), file = made("input"), clear = made("button", "plain", "Clear");
            const data = new Uint8ClampedArray(channels * height * width);
            fields.picture = { shape: [channels, height, width], data };
            canvas.width = width * zoom;
            canvas.height = height * zoom;
            canvas.tabIndex = 0;
            canvas.setAttribute("role", "img");
            canvas.setAttribute("aria-label", "Draw here with the pointer");
            file.type = "file";
            file.accept = "image/*";
            file.setAttribute("aria-label", "A picture from a file");
            const paint = () => {
                const brush = canvas.getContext("2d");
                for (let y = 0; y < height; y++)
                    for (let x = 0; x < width; x++) {
                        const of = (c) => data[(Math.min(c, channels - 1) * height + y) * width + x];
                        brush.fillStyle = `rgb(${of(0)},${of(1)},${of(2)})`;
                        brush.fillRect(x * zoom, y * zoom, zoom, zoom);
                    }
            };
            const fill = (shape, bytes) => {
                const values = { [step.from]: { shape, data: bytes } };
                STEPS.picture(values, step);
                data.set(values[step.to].flat(2));
            };
            const draw = (event) => {
                if (!event.buttons) return;
                const box = canvas.getBoundingClientRect(), size = Math.max(1, Math.round(width / 20));
                const x0 = Math.floor((event.clientX - box.left) / box.width * width), y0 = Math.floor((event.clientY - box.top) / box.height * height);
                for (let c = 0; c < channels; c++)
                    for (let y = Math.max(0, y0 - size); y <= Math.min(height - 1, y0 + size); y++)
                        for (let x = Math.max(0, x0 - size); x <= Math.min(width - 1, x0 + size); x++)
                            data[(c * height + y) * width + x] = Math.max(data[(c * height + y) * width + x], x === x0 && y === y0 ? 255 : 150);
                paint();
                show();
            };
            canvas.addEventListener("pointerdown", draw);
            canvas.addEventListener("pointermove", draw);
            clear.type = "button";
            clear.addEventListener("click", () => { data.fill(0); fields.picture = { shape: [channels, height, width], data }; paint(); show(); });
            file.addEventListener("change", async () => {
                const bitmap = await createImageBitmap(file.files[0]), room = new OffscreenCanvas(bitmap.width, bitmap.height), brush = room.getContext("2d");
                brush.drawImage(bitmap, 0, 0);
                const pixels = brush.getImageData(0, 0, bitmap.width, bitmap.height).data, size = bitmap.width * bitmap.height;
                const all = new Uint8ClampedArray(3 * size);
                for (let k = 0; k < size; k++) for (let c = 0; c < 3; c++) all[c * size + k] = pixels[4 * k + c];
                fill([3, bitmap.height, bitmap.width], all);
                paint();
                show();
            });
            if (begun) fill(shapeOf(JSON.parse(begun)), JSON.parse(begun).flat(2));
            paint();
            place.append(canvas, file, clear);
        },
        value: (fields = FIELDS) => fields.picture,
    },
};

/* Several inputs: the fields of each under its name. */
const INPUTS = MODEL.before.filter((step, k) => step.step === "input" && MODEL.before.findIndex((own) => own.name === step.name) === k);
QUESTIONS.input = {
    title: "A row",
    build: (place, begun) => {
        const given = begun ? JSON.parse(begun) : {};
        for (const { name, column, steps: [first] } of INPUTS) {
            const asked = column ? given[column] : JSON.stringify(given), box = made("div", "field", column || name);
            FIELDS[name] = {};
            QUESTIONS[first.step].build(box, column && asked !== undefined && typeof asked !== "string" ? JSON.stringify(asked) : asked, first, FIELDS[name]);
            place.append(box);
        }
    },
    value: () => Object.assign({}, ...INPUTS.map(({ name, column, steps: [first] }) => {
        const value = QUESTIONS[first.step].value(FIELDS[name]);
        return column ? { [column]: value } : value;
    })),
};
