import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { apiDocuments } from '../../libs/contract/api-documents.mjs';

const DECISIONS = new URL('../inside/adr/', import.meta.url);
const COMPILED = new URL('../../dist/apps/api/src/', import.meta.url);

/** What the site adds at the end of a page: on GitHub a reader has the folder, or the running server. */
const PARTS = {
  'inside/adr/README.md': () => decisions().map(({ text, link }) => `- [${text}](${link}.md)`),
  'reference/openapi.md': () => operations('tenants', 'Any token of the tenant.'),
  'reference/openapi-operators.md': () => operations('operators', 'A token of an operator.'),
};

/** The text of a page with the part that is made for it, or undefined if there is none. */
export function completed(text, page) {
  const part = PARTS[page];
  return part && `${text}\n${part().join('\n')}\n`;
}

/** The decisions in their order, each with its title. */
export const decisions = () =>
  readdirSync(DECISIONS)
    .filter((name) => /^\d/.test(name))
    .sort()
    .map((name) => ({
      text: /^# (.*)$/m.exec(readFileSync(new URL(name, DECISIONS), 'utf8'))?.[1] ?? name,
      link: name.replace(/\.md$/, ''),
    }));

/**
 * Every operation of an API, from the compiled routes. @param audience whose API it is
 * @param token whose token an operation takes that asks for no scope
 */
function operations(audience, token) {
  if (!existsSync(new URL('openapi/document.js', COMPILED))) {
    throw new Error('The REST API is not compiled: run `npm run build` in the folder of Baton first');
  }
  const { paths, components } = JSON.parse(apiDocuments()[audience]);
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).flatMap(([method, operation]) =>
      operationOf(`${method.toUpperCase()} ${path}`, operation, components, token),
    ),
  );
}

function operationOf(
  name,
  { summary, description, security, parameters = [], requestBody, responses },
  components,
  token,
) {
  const taken = parameters.map((parameter) => resolved(parameter, components));
  return [
    '',
    `## \`${name}\``,
    '',
    summary ?? '',
    // The description says which scopes are enough.
    '',
    description ?? (security?.length > 0 ? token : 'No token.'),
    ...(taken.length > 0 ? ['', '| Parameter | In | Meaning |', '| --- | --- | --- |'] : []),
    ...taken.map(
      (each) => `| \`${each.name}\` | ${each.in} | ${(each.description ?? '').replaceAll('|', '\\|')} |`,
    ),
    ...(requestBody ? ['', 'Body:', ...schemaOf(requestBody)] : []),
    ...Object.entries(responses ?? {}).flatMap(([status, response]) =>
      answerOf(status, resolved(response, components)),
    ),
  ];
}

/** An answer of success, with the schema of its body. The other answers are the same everywhere. */
function answerOf(status, response) {
  if (!status.startsWith('2')) return [];
  return ['', `Answer ${status}: ${response.description}`, ...schemaOf(response)];
}

function schemaOf({ content = {} }) {
  return Object.entries(content).flatMap(([type, { schema }]) => [
    '',
    `::: details ${type}`,
    '```json',
    JSON.stringify(schema, null, 2),
    '```',
    ':::',
  ]);
}

/** What a reference such as `#/components/parameters/limit` leads to. */
const resolved = (value, components) =>
  value.$ref
    ? value.$ref
        .split('/')
        .slice(2)
        .reduce((at, key) => at?.[key], components)
    : value;
