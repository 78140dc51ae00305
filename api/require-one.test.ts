import { requireOne } from "./require-one";

const of = (userId: string) => ({ user_id: userId, storage_id: `of-${userId}` });

test("one resource is returned, and none is not found", () => {
  expect(requireOne("artifact", "a", [of("ann")])).toEqual(of("ann"));
  expect(() => requireOne("artifact", "a", [])).toThrow(
    expect.objectContaining({ status: 404, code: "artifact_not_found", param: "artifact_id" }),
  );
});

test.each([
  ["user_id", "user_id", /pass user_id to select one$/],
  ["storage_id", "deployment_id", /use its storage_id as the id to select one$/],
] as const)("of several, the caller must select one by %s", (selector, param, message) => {
  const select = () => requireOne("deployment", "d", [of("ann"), of("bob")], selector);
  expect(select).toThrow(message);
  expect(select).toThrow(
    expect.objectContaining({
      status: 400,
      code: "ambiguous_id",
      param,
      details: { owners: [of("ann"), of("bob")] },
    }),
  );
});
