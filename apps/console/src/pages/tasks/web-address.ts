/** An address of the web. Undefined for any other text: a browser would run one of `javascript:`. */
export function webAddress(text: string): URL | undefined {
  const url = URL.parse(text);
  return url?.protocol === 'https:' || url?.protocol === 'http:' ? url : undefined;
}
