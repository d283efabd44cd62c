/** A number that the environment may set, as the first lines of each benchmark list them. */
export const numberSetting = (name, fallback) => Number(process.env[name] ?? fallback);
