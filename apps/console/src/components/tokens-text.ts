const NUMBER = new Intl.NumberFormat();

/** Tokens of models that went in and came out: `1,907 → 122`. */
export const tokensText = (input: number, output: number): string =>
  `${NUMBER.format(input)} → ${NUMBER.format(output)}`;
