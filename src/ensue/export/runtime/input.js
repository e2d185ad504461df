/* One input of several, among values of its own: what it reads is in a column of the row, or is the row itself. */
STEPS.input = (values, step) => {
    const row = values.question;
    if (!isRow(row)) throw refused('a row, {"column": "value"}', row);
    if (step.column && !Object.hasOwn(row, step.column)) throw new Error(`there is no column ${step.column}, which the model was trained with`);
    values.inputs ??= {};
    const own = (values.inputs[step.name] ??= { question: step.column ? row[step.column] : row });
    for (const inner of step.steps) STEPS[inner.step](own, inner);
    for (const name of step.gives) values[`${step.name}_${name}`] = own[name];
};
