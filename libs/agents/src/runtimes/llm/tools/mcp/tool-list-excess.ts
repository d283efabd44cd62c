/** The list of tools is too large. */
export class ToolListExcess extends Error {}
