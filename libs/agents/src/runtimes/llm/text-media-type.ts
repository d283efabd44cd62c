/** Media types of text that every model can read. */
export const TEXT_MEDIA_TYPE = /^(text\/.*|application\/(json|xml|yaml|x-yaml|javascript|.*\+(json|xml)))$/;
