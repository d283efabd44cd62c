import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);

/** The OpenAPI documents of both ports, as JSON, from the compiled routes. */
export function apiDocuments() {
  require('reflect-metadata');
  const compiled = (path) => require(`../../dist/apps/api/src/${path}`);
  const { routesOf } = compiled('openapi/route.js');
  const { buildDocument } = compiled('openapi/document.js');
  const documentOf = (module) => {
    const routes = Reflect.getMetadata('controllers', module).flatMap(routesOf);
    const described = routes.filter(({ path }) => path.startsWith('/v1/'));
    return JSON.stringify(
      buildDocument(described, { title: 'Baton', description: '', server: '/', token: '' }),
    );
  };
  const { RestModule } = compiled('rest/rest.module.js');
  const { AdminModule } = compiled('admin/admin.module.js');
  return { tenants: documentOf(RestModule), operators: documentOf(AdminModule) };
}
