export { default } from '../poison/index.mjs';
