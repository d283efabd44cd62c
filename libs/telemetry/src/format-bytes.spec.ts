import { formatBytes } from './format-bytes.js';

it.each([
  [0, '0 bytes'],
  [1023, '1023 bytes'],
  [1536, '1.5 KiB'],
  [5 * 1024 ** 3, '5.0 GiB'],
  [4096 * 1024 ** 4, '4096.0 TiB'],
])('writes %d in the largest unit that it fills', (bytes, text) => {
  expect(formatBytes(bytes)).toBe(text);
});
