/** SQL of the owner in reports and caps. There may be as many guests as tasks: they are one. */
export const ownerInReports = (owner: string): string =>
  `CASE WHEN ${owner} LIKE 'guest:%' THEN 'guest' ELSE coalesce(${owner}, '') END`;
