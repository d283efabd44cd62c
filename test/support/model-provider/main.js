// node test/support/model-provider/main.js [port] [key]: a model that repeats its input. "use <tool> <JSON>"
// has it call that tool and then say what came of it.
require('../load-typescript.js');
const { ModelProvider } = require('./model-provider.ts');
const { parrot } = require('./parrot.ts');

const [port = '9292', key] = process.argv.slice(2);
ModelProvider.start({ port: Number(port), key }).then((provider) => {
  provider.answer(parrot);
  console.log(`a scripted model provider listens at ${provider.url}`);
});
