// npm run fuzz
require('../support/load-typescript.js');

const { main } = require('./cli.ts');

main(process.argv.slice(2)).then((code) => process.exit(code));
