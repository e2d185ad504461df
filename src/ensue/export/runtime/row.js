/* A row of a table: numbers scaled, categories looked up. A cell may be a text or a number. */

STEPS.row = (values, step) => {
    const row = values[step.from], numbers = [], categories = [];
    const cell = (name) => {
        if (!(name in row)) throw new Error(`there is no column ${name}, which the model was trained with`);
        const own = row[name];
        return own === null || own !== own ? "" : String(own).trim();
    };
    for (const { name, mean, spread, indicator } of step.numbers) {
        const text = cell(name), gone = step.missing.includes(text.toLowerCase()), value = Number(text);
        if (gone ? !step.gaps : !Number.isFinite(value)) throw new Error(`column ${name}: expected a finite number, got ${text || "nothing"}`);
        numbers.push(gone ? 0 : (value - mean) / spread);
        if (indicator) numbers.push(gone ? 1 : 0);
    }
    for (const { name, categories: known } of step.categories) {
        const text = cell(name);
        if (!text && !step.gaps) throw new Error(`column ${name}: expected a value, got nothing`);
        categories.push(known.indexOf(text) + 1);
    }
    Object.assign(values, { numbers, categories });
};
