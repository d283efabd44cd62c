module.exports = async () => {
  await globalThis.stopServices?.();
};
