import { z } from 'zod';

/** A link that pages may show: http or https. Any other scheme, such as `javascript:`, could run code in the page. */
export const webUrl = z.url({ protocol: /^https?$/, error: 'set it to a URL with http or https' });

/** Whether a stored link may be shown. Earlier releases have stored links with any scheme. */
export const isWebUrl = (text: string | undefined): text is string => webUrl.safeParse(text).success;
