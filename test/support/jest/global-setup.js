require('../resolve-typescript.js');

/** Once per run of Jest, before the integration and e2e projects. */
module.exports = async () => {
  const { startServices } = require('../services.ts');
  globalThis.stopServices = await startServices();
};
