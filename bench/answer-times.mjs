// npm run bench:answer-times: does the time of an answer tell whether others have the thing it is about?
// PAIRS (80) of calls per kind of call. Ends with an error if one tells.
import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);
require('../test/support/load-typescript.js');
const { measureAnswerTimes } = require('../test/isolation/answer-times.ts');

const unfair = await measureAnswerTimes(Number(process.env.PAIRS ?? 80));
console.log(unfair.length ? `The time tells something:\n${unfair.join('\n')}` : 'The time tells nothing.');
process.exit(unfair.length ? 1 : 0);
