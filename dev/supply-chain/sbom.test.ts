import { mergeBom } from "./sbom";

test("the merged document has the packages of npm and Python", () => {
  const component = { "bom-ref": "forge@1", name: "checkout-7" };
  const merged = mergeBom({
    bomFormat: "CycloneDX",
    specVersion: "1.5",
    metadata: { component },
    components: [{ "bom-ref": "pg@8", name: "pg" }],
    dependencies: [{ ref: "forge@1", dependsOn: ["pg@8"] }],
  });
  expect(merged.metadata.component.name).toBe("forge");
  expect(merged.components.map(({ name }) => name)).toEqual(
    expect.arrayContaining(["pg", "pyarrow", "pydantic", "torch"]),
  );
  const refs = merged.components.map((each) => each["bom-ref"]);
  expect(new Set(refs).size).toBe(refs.length);
  expect(merged.components.find(({ name }) => name === "pydantic")).toMatchObject({
    purl: expect.stringMatching(/^pkg:pypi\/pydantic@\d/),
    licenses: [{ expression: "MIT" }],
  });
});
